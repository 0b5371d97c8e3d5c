"""The proof of coherence: a state machine over the real services, triggers, signal and caches."""
