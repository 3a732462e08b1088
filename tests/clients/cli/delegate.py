"""Drives an agent that somebody else wrote, with a model that is a stub: it adds `attache mcp` to its servers, creates a
sub-agent, steers it, waits for it and reads its result. Then the tree of Attaché has to show the same.

    delegate.py AGENT PROGRAM ATTACHE      AGENT is `copilot` or `codex`
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import stub


def copilot(program, attache, model, house, url):
    server = {"type": "local", "command": attache, "args": ["mcp", "--model", model], "tools": ["*"],
              "env": {name: os.environ[name] for name in os.environ if name.startswith("ATTACHE_")}}
    config = json.dumps({"mcpServers": {"attache": server}})
    environment = {**os.environ, "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url,
                   "COPILOT_MODEL": "stub", "HOME": str(house)}
    line = [program, "-p", "Delegate the look.", "--allow-all-tools", "--disable-builtin-mcps",
            "--additional-mcp-config", config]
    return line, environment


def codex(program, attache, model, house, url):
    home = house / ".codex"
    home.mkdir()
    passed = [name for name in os.environ if name.startswith("ATTACHE_")]
    (home / "config.toml").write_text(
        "model = \"stub\"\nmodel_provider = \"stub\"\napproval_policy = \"never\"\n"
        f"[model_providers.stub]\nname = \"stub\"\nbase_url = {json.dumps(url)}\nwire_api = \"responses\"\n"
        "[mcp_servers.attache]\n"
        f"command = {json.dumps(attache)}\nargs = {json.dumps(['mcp', '--model', model])}\n"
        f"env_vars = {json.dumps(passed)}\ntool_timeout_sec = 330\n")
    environment = {**os.environ, "CODEX_HOME": str(home), "HOME": str(house)}
    line = [program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "Delegate the look."]
    return line, environment


def main():
    agent, program, attache = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        house = pathlib.Path(folder)
        work = house / "work"
        work.mkdir()
        (work / "file.txt").write_text("something\n")
        os.environ.setdefault("ATTACHE_HOME", str(house / "state"))
        os.environ.setdefault("ATTACHE_DAEMON__IDLE_SECONDS", "2")
        child = pathlib.Path(__file__).with_name("child.yaml").resolve()
        model = f"scripted/{child}"
        url = stub.serve()
        line, environment = {"copilot": copilot, "codex": codex}[agent](program, attache, model, house, url)
        ended = subprocess.run(line, cwd=work, env=environment, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=180)
        said = ended.stdout + ended.stderr
        if "WALK-DONE" not in said:
            sys.exit(f"{agent} did not come to its end ({ended.returncode}):\n{said}\n"
                     f"it asked {len(stub.Model.seen)} times")
        tree = json.loads(subprocess.run([attache, "tree", "--json"], capture_output=True, text=True,
                                         check=True).stdout)
        children = [child for root in tree for child in root["children"]]
        assert len(children) == 1, tree
        assert children[0]["name"] == "looker" and children[0]["outcome"] == "succeeded", children
        assert children[0]["result_preview"] == "The file and the folder were looked at.", children
        events = json.loads(subprocess.run([attache, "events", children[0]["session_id"], "--json"],
                                           capture_output=True, text=True, check=True).stdout)["events"]
        given = [event["text"] for event in events if event["event_type"] == "user"]
        assert given == ["Look at the file.", "Look at the folder too."], given
        turns = {event["turn"] for event in events if event["event_type"] == "user"}
        assert len(turns) == 1, "it was steered in the run that was under way"
        print(f"{agent}: created a sub-agent, steered it, waited for it and read its result")


if __name__ == "__main__":
    main()
