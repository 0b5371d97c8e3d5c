"""What an owner starts: the model server on a listening socket that it inherits.

python -m gateway_app.local_model FD
"""

import socket
import sys

from gateway_app.local_model.packages import LocalModelError
from gateway_app.local_model.running import run_owned

if __name__ == "__main__":
    try:
        run_owned(socket.socket(fileno=int(sys.argv[1])))
    except LocalModelError as exc:
        sys.exit(str(exc))
