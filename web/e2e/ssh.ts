// The real OpenSSH client, as a user would run it after copying the command.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Homeport } from './fixture'

export class Ssh {
  readonly publicKey: string
  private readonly options: string[]

  constructor(homeport: Homeport) {
    const dir = mkdtempSync(join(tmpdir(), 'homeport-ssh-'))
    const key = join(dir, 'id_ed25519')
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'journey', '-f', key])
    this.publicKey = readFileSync(`${key}.pub`, 'utf8').trim()
    const config = join(dir, 'config')
    writeFileSync(config, homeport.command('ssh-config'))
    this.options = [
      ...[
        '-F',
        config,
        '-i',
        key,
        '-o',
        'IdentitiesOnly=yes',
        '-o',
        'BatchMode=yes',
        '-o',
        'ConnectTimeout=10',
      ],
      ...['-o', `UserKnownHostsFile=${join(dir, 'known_hosts')}`, '-o', 'StrictHostKeyChecking=accept-new'],
    ]
  }

  /** Runs a remote command with the copied `ssh -p PORT root@HOST`. */
  run(copied: string, command: string, input?: Buffer | string): Promise<string> {
    const [program, ...args] = copied.split(' ')
    if (program !== 'ssh') throw new Error(`not an ssh command: ${copied}`)
    return run('ssh', [...this.options, ...args, command], input)
  }

  /** Logs in on a terminal, as somebody who types `ssh -p PORT root@HOST`. */
  terminal(copied: string): Terminal {
    const [, ...args] = copied.split(' ')
    return new Terminal(spawn('ssh', [...this.options, '-tt', ...args], { stdio: 'pipe' }))
  }

  /** Copies a file in, as scp does for the same address. */
  async copyIn(copied: string, from: string, to: string): Promise<void> {
    const m = /^ssh -p (\d+) (\S+)$/.exec(copied)
    if (m?.[1] === undefined) throw new Error(`not an ssh command: ${copied}`)
    await run('scp', [...this.options, '-P', m[1], from, `${m[2]}:${to}`])
  }
}

/** What somebody sees who is logged in. */
export class Terminal {
  text = ''

  constructor(private readonly child: ChildProcess) {
    child.stdout?.on('data', (bytes) => {
      this.text += String(bytes)
    })
  }

  /** Ends the session, if it has not ended by itself. */
  async close(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const ended = new Promise((done) => this.child.once('exit', done))
    this.child.kill()
    await ended
  }
}

function run(program: string, args: string[], input?: Buffer | string): Promise<string> {
  return new Promise((done, fail) => {
    const child = execFile(
      program,
      args,
      { encoding: 'utf8', maxBuffer: 64 << 20 },
      (err, stdout, stderr) => {
        if (err) fail(new Error(`${program} ${args.slice(-2).join(' ')}: ${err.message}\n${stderr}`))
        else done(stdout)
      },
    )
    child.stdin?.end(input ?? '')
  })
}
