// Makes src/assets/pod-ready.wav: a ship's bell, two soft strokes. Run by hand; the result is committed.
import { writeFileSync } from 'node:fs'

const rate = 22050
const length = Math.floor(rate * 1.1)
const strokes = [
  { at: 0, pitch: 659.25 },
  { at: 0.18, pitch: 880 },
]
const partials = [
  [1, 1, 4.5],
  [2.01, 0.45, 7],
  [2.98, 0.22, 11],
  [5.4, 0.08, 18],
]

const wav = Buffer.alloc(44 + length * 2)
wav.write('RIFF', 0)
wav.writeUInt32LE(36 + length * 2, 4)
wav.write('WAVEfmt ', 8)
wav.writeUInt32LE(16, 16)
wav.writeUInt16LE(1, 20)
wav.writeUInt16LE(1, 22)
wav.writeUInt32LE(rate, 24)
wav.writeUInt32LE(rate * 2, 28)
wav.writeUInt16LE(2, 32)
wav.writeUInt16LE(16, 34)
wav.write('data', 36)
wav.writeUInt32LE(length * 2, 40)
for (let i = 0; i < length; i++) {
  const time = i / rate
  let sum = 0
  for (const { at, pitch } of strokes) {
    const since = time - at
    if (since < 0) continue
    const attack = Math.min(1, since / 0.004)
    for (const [ratio, loud, decay] of partials) {
      sum += attack * loud * Math.exp(-decay * since) * Math.sin(2 * Math.PI * pitch * ratio * since)
    }
  }
  const fade = Math.min(1, (length - i) / (rate * 0.05))
  wav.writeInt16LE(Math.round(Math.max(-1, Math.min(1, sum * 0.32 * fade)) * 32767), 44 + i * 2)
}
writeFileSync(new URL('../src/assets/pod-ready.wav', import.meta.url), wav)
