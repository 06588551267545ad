"""A process that has imported what commands import, and is each command that it is asked for in a copy of itself.

python tests/ready.py ADDRESS          serves at the address of a socket, until it is ended
python tests/ready.py ADDRESS WORD...  has that command done, with this terminal, folder and environment
"""

import json
import os
import signal
import socket
import sys

OFTEN = ["matplotlib.pyplot", "pandas", "pyarrow.compute", "pyarrow.csv", "rich.table", "scipy.special", "scipy.stats"]


def serve(address: str) -> None:
    """Goes on and on."""
    import pkgutil
    from importlib import import_module

    from banbury import cli

    for name in [*OFTEN, *(f"banbury.cli.{module.name}" for module in pkgutil.iter_modules(cli.__path__))]:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a command here
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}.new")
        listening.listen()
        os.rename(f"{address}.new", address)  # who sees it may ask
        while True:
            asked, _ = listening.accept()
            if os.fork() == 0:
                become(asked)
            asked.close()


def become(asked: socket.socket) -> None:
    """Is the command, and tells its code."""
    from banbury import cli

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told, streams, *_ = socket.recv_fds(asked, 1 << 20, 3)
    folder, environment, words = json.loads(told)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    code = cli.main(words)
    asked.send(str(code).encode())
    os._exit(0)


def ask(address: str, words: list[str]) -> int:
    """The code of a command that is done there; 1 when it was killed."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps([os.getcwd(), dict(os.environ), words]).encode()], [0, 1, 2])
        return int(server.recv(16) or 1)


if __name__ == "__main__":
    _, address, *words = sys.argv
    sys.exit(ask(address, words) if words else serve(address))
