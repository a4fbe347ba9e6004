import type { components } from './schema.gen'

type Schemas = components['schemas']

export type AutoTopUp = Schemas['AutoTopUp']
export type Balance = Schemas['Balance']
export type Card = Schemas['Card']
export type CreatePod = Schemas['CreatePod']
export type FolderEntry = Schemas['FolderEntry']
export type Invitation = Schemas['Invitation']
export type Member = Schemas['Member']
export type Notice = Schemas['Notice']
export type Offer = Schemas['Offer']
export type Pod = Schemas['Pod']
export type PodStatus = Pod['status']
export type SSHKey = Schemas['SSHKey']
export type Team = Schemas['Team']
export type Transaction = Schemas['Transaction']
export type Spend = Schemas['Spend']
export type Subscription = Schemas['Subscription']
export type Statement = Schemas['Statement']
export type UserInfo = Schemas['UserInfo']
export type Version = Schemas['Version']
export type Volume = Schemas['Volume']

/** The products that a team can say it waits for. */
export type Product = Schemas['Interest']['product']
