"""How many sockets fit is the system's limit, not the shell's; one that is too low is said."""

import resource
from pathlib import Path

from gateway_app.serving.open_files import MOST
from tests.gateway_app.serving.conftest import Served, Site

UNDER_A_LIMIT = (
    "import os, resource, sys; soft, hard = map(int, sys.argv[1:3]);"
    " resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard));"
    " os.execv(sys.executable, [sys.executable, 'manage.py', 'serve', '--port', '0'])"
)


def serve_with(site: Site, soft: int, hard: int) -> Served:
    program = Served(site.data_dir, "-c", UNDER_A_LIMIT, str(soft), str(hard))
    return site.keep(program).ready()


def most_files(served: Served) -> int:
    limits = Path(f"/proc/{served.process.pid}/limits").read_text(encoding="utf-8")
    [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
    return int(line.split()[3])


def test_it_takes_what_the_system_lets_it_have(site: Site) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    served = serve_with(site, 512, hard)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    assert most_files(served) == most
    assert served.end() == 0
    assert not [line for line in served.said if "files may be open" in line]


def test_it_says_that_few_sockets_fit(site: Site) -> None:
    served = serve_with(site, 256, 512)
    assert most_files(served) == 512
    assert served.end() == 0
    [said] = [line for line in served.said if "files may be open" in line]
    assert said.startswith("Only 512 files may be open at once")
    assert "LimitNOFILE" in said
