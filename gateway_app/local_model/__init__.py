"""The embedded model: SmolLM2 in llama.cpp, in a process of its own, behind OpenAI's HTTP API.

`server` answers HTTP, `slots` gives each conversation its place in the model's memory, `answers`
and `chatml` make a conversation's next prompt begin with exactly the tokens of its last one,
`engine` is llama.cpp. `child` is the owner's side: it keeps such a process running.
Nothing here but `child`'s callers knows Django.
"""
