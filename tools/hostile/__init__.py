"""Requests made to cost a server as much as they can, measured: what each costs, and who has to wait meanwhile.

`python -m tools.hostile --help` tells how it is run. A server is started by a command, as in `tools/differential`.
While a case runs, a process of its own asks for `/livez/ping` again and again (`probe`), and the server's processor
time is read from /proc (`server`). The server's own watchdog (`--debug-loop-watchdog`) tells what held its loop; that
figure is of processor time, so others on the machine do not disturb it. The same case is sent to the reference, whose
processor time bounds ours.
"""
