import { expect, test } from 'vitest'
import { missingFor } from './prerequisites'

const all = { freeVolumes: 1, volumeChosen: true, keys: 1, keyChosen: true, balance: 10 }

test.each([
  [{}, []],
  [{ freeVolumes: 0, volumeChosen: false }, ['noVolumes']],
  [{ volumeChosen: false }, ['missingVolume']],
  [{ keys: 0, keyChosen: false }, ['noKeys']],
  [{ keyChosen: false }, ['missingKey']],
  [{ balance: 0.009 }, ['funds']],
  [{ balance: 0.01 }, []],
  [{ freeVolumes: null, volumeChosen: false, keys: null, keyChosen: false, balance: null }, []],
  [{ freeVolumes: 0, keys: 0, balance: 0 }, ['noVolumes', 'noKeys', 'funds']],
])('%j lacks %j', (facts, missing) => expect(missingFor({ ...all, ...facts })).toEqual(missing))
