"""The layers around a call, one short file each; `pegboard.pipeline` puts them in order."""
