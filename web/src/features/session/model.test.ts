import { expect, test } from 'vitest'
import type { Team, UserInfo } from '@/api/types'
import { chooseTeam } from './model'

const team = (id: string, is_personal: boolean): Team => ({
  id,
  name: id,
  description: '',
  plan: 'hobby',
  is_personal,
  role: 'admin',
  created_at: '',
})
const info = (teams: Team[]): UserInfo => ({
  user_id: 'u',
  email: 'e',
  personal_team: { id: 'mine', name: 'Mine' },
  teams,
})

test('the chosen team if it is the user’s, else the personal one', () => {
  const teams = [team('lab', false), team('mine', true)]
  expect(chooseTeam(info(teams), 'lab')?.id).toBe('lab')
  expect(chooseTeam(info(teams), 'foreign')?.id).toBe('mine')
  expect(chooseTeam(info(teams), null)?.id).toBe('mine')
})

test('a personal team that the list does not name still serves', () => {
  expect(chooseTeam(info([]), null)).toMatchObject({
    id: 'mine',
    name: 'Mine',
    plan: 'hobby',
    is_personal: true,
  })
})
