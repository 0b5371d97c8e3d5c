"""Cases of coherence, held over the websocket, the real runner and a fake model server."""
