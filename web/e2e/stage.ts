// A team put on stage in the server's stead, for teams that would take long to
// make: exact seats, one member, foreign roles.
import type { Page } from '@playwright/test'
import type { components } from '../src/api/schema.gen'
import { answer } from './answers'
import { ago, id } from './bodies'
import type { Client } from './client'

export type Team = components['schemas']['Team']
export type Member = components['schemas']['Member']
type Invitation = components['schemas']['Invitation']

export function aMember(part: Partial<Member> = {}): Member {
  return {
    id: id('3e', 1),
    user_id: id('0ae5', 1),
    email: 'mira@example.com',
    role: 'member',
    ...part,
  }
}

export function anInvitation(part: Partial<Invitation> = {}): Invitation {
  return {
    id: id('14'),
    email: 'waiting@example.com',
    created_at: ago(3600),
    expires_at: ago(-86_400),
    ...part,
  }
}

/** A person's own row. */
export function selfOf(client: Client, role: Member['role'] = 'admin'): Member {
  return aMember({ id: id('3e'), user_id: client.userId, email: client.email, role })
}

/** Puts a team, its members and its invitations before a person: a Pro team of one admin by default. */
export async function stage(
  page: Page,
  client: Client,
  part: Partial<Team> = {},
  members: Member[] = [selfOf(client)],
  invitations: Invitation[] = [],
): Promise<string> {
  const team: Team = {
    id: id('7ea0'),
    name: 'Deep Sea Lab',
    description: '',
    plan: 'pro',
    is_personal: false,
    role: 'admin',
    created_at: ago(86_400),
    ...part,
  }
  await answer(page, 'get', '/user/info', {
    user_id: client.userId,
    email: client.email,
    personal_team: { id: client.teamId, name: 'own' },
    teams: [team],
  })
  await answer(page, 'get', '/teams/{id}/members', members)
  await answer(page, 'get', '/teams/{id}/pending-invitations', invitations)
  return team.id
}
