"""A user who is not root manages their home, on a host whose settings of logins only root can read."""

from __future__ import annotations

from pathlib import Path

from tests.host.run.site import Site
from tests.lab import Host

PLAYBOOK = """
hosts: all
resources:
  - file: /home/plain/conf
    content: "x\\n"
  - directory: /home/plain/dir
  - line_in_file: /home/plain/.profile
    line: export A=1
    create: true
  - authorized_key: ann
    user: plain
    key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ann
"""
PREPARE = """
useradd -m -s /bin/sh plain && mkdir -p /home/plain/.ssh /etc/sudoers.d
cp /root/.ssh/authorized_keys /home/plain/.ssh/ && chown -R plain: /home/plain/.ssh && chmod 0700 /home/plain/.ssh
chmod 0750 /etc/sudoers.d && chmod 0600 /etc/ssh/sshd_config
"""


def test_a_plain_user_manages_their_home(tmp_path: Path, light_host: Host) -> None:
    light_host.run(["sh", "-ec", PREPARE])
    site = Site(tmp_path, light_host, "plain")
    inventory = site.base / "inventory.yml"
    inventory.write_text(inventory.read_text().replace(f"user: {light_host.user}", "user: plain"))
    (site.base / "site.yml").write_text(PLAYBOOK)
    site("apply", "site.yml", "--yes")
    site("plan", "site.yml", "--detailed-exitcode")
    site("destroy", "site.yml", "--yes")
    assert not light_host.path("/home/plain/conf").exists()
