import { expect, test } from 'vitest'
import { nextStage, parseVoices, swipeStep } from './model'

test('stages go round', () => {
  expect([nextStage(4, 1, 5), nextStage(0, -1, 5), nextStage(1, 1, 5)]).toEqual([0, 4, 2])
})

test.each([
  [-60, 1],
  [60, -1],
  [-40, 0],
  [49, 0],
  [50, -1],
])('a drag of %i px is a step of %i', (distance, step) => expect(swipeStep(distance)).toBe(step))

const voice = { quote: 'It works.', name: 'Ada', work: 'tides' }
test.each([
  [null, null],
  ['', null],
  ['{', null],
  ['{}', null],
  ['[]', null],
  [JSON.stringify([voice, { ...voice, work: 1 }]), null],
  [JSON.stringify([voice, voice]), [voice, voice]],
])('testimonials written as %s', (text, voices) => expect(parseVoices(text)).toEqual(voices))
