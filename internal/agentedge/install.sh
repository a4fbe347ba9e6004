# Installs and starts the agent of a Homeport pod. It is run as root, with
# HP_TOKEN (the instance's token) and HP_MODE (machine or container) set above
# or in the environment; HP_BASE is where this machine reaches the nodes, where
# that is not the public address. Running it again replaces agent and token.
set -eu
umask 077
unset LD_PRELOAD
fail() { echo "homeport: $*" >&2; exit 1; }
[ -n "${HP_TOKEN:-}" ] || fail 'HP_TOKEN is not set'
[ "$(id -u)" = 0 ] || fail 'this needs root'
base=${HP_BASE:-'{{.Base}}'}
dir=${HP_DIR:-/opt/homeport}
case $(uname -m) in
{{- range $arch, $agent := .Agents}}
{{if eq $arch "amd64"}}x86_64 | amd64{{else}}aarch64 | arm64{{end}}) sum={{$agent.Sum}} ;;
{{- end}}
*) fail "there is no agent for $(uname -m)" ;;
esac
has() { command -v "$1" >/dev/null 2>&1; }
fetch() {
  if has curl; then curl -fsSL --connect-timeout 20 -m 600 -o "$2" "$1"; else wget -q -T 60 -O "$2" "$1"; fi
}
mkdir -p "$dir" /workspace
chmod 755 "$dir"
old=$(sha256sum "$dir/homeport-agent" 2>/dev/null || true)
if [ "${old%% *}" != "$sum" ]; then
  fetch "$base/agent/bin/$sum" "$dir/new" || fail 'the agent could not be fetched'
  got=$(sha256sum "$dir/new")
  [ "${got%% *}" = "$sum" ] || fail 'the agent is not what the node promised'
  chmod 755 "$dir/new"
  mv -f "$dir/new" "$dir/homeport-agent"
fi
printf '%s\n' "$HP_TOKEN" >"$dir/token.new"
mv -f "$dir/token.new" "$dir/token"
unset HP_TOKEN
cat >"$dir/run" <<RUN
#!/bin/sh
unset LD_PRELOAD HP_MODE HP_DIR HP_BASE
export HOMEPORT_AGENT_URL='$base' HOMEPORT_AGENT_TOKEN_FILE='$dir/token'
while :; do
  '$dir/homeport-agent' run
  sleep 3
done
RUN
chmod 700 "$dir/run"
# The agent is the SSH server of the pod: the image's own gives way. Sessions
# that are open, such as the one that may have brought this script, stay.
if [ "${HP_MODE:-machine}" = container ]; then
  exec "$dir/run" </dev/null
fi
if [ -d /run/systemd/system ] && has systemctl; then
  cat >/etc/systemd/system/homeport-agent.service <<UNIT
[Unit]
Description=Homeport agent
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=$dir/run
Restart=always
RestartSec=3
OOMScoreAdjust=-900
[Install]
WantedBy=multi-user.target
UNIT
  chmod 644 /etc/systemd/system/homeport-agent.service
  systemctl daemon-reload
  for unit in ssh.socket sshd.socket ssh.service sshd.service; do
    systemctl disable --now "$unit" >/dev/null 2>&1 || true
  done
  systemctl enable homeport-agent.service >/dev/null 2>&1
  systemctl restart homeport-agent.service
  exit 0
fi
if has service; then
  service ssh stop >/dev/null 2>&1 || service sshd stop >/dev/null 2>&1 || true
fi
if [ -f "$dir/pid" ]; then kill -- "-$(cat "$dir/pid")" 2>/dev/null || true; fi
setsid "$dir/run" </dev/null >"$dir/log" 2>&1 &
echo $! >"$dir/pid"
# end
