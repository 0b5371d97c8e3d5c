"""`/api/v1/`: each handler translates, authorises, delegates to what the websocket uses too."""
