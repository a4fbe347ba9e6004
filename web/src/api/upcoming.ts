import type { components, paths } from './schema.gen'

/** An answer with a JSON body. */
interface Json<T> {
  content: { 'application/json': T }
}
interface OneTeam {
  path: { id: string }
}
interface Product {
  team_id: string
  product: string
}

type Order = Omit<components['schemas']['CreatePod'], 'disk_price' | 'data_center_id'> & {
  disk_price: number | null
  data_center_id: string | null
}

/** Calls that the pages make and the server's description does not name yet: each goes when it does. */
export interface UpcomingPaths {
  /** The description does not say that an order echoes the nulls of its offer. */
  '/pods': {
    get: paths['/pods']['get']
    post: { requestBody: Json<Order>; responses: paths['/pods']['post']['responses'] }
  }
  '/teams/{id}': {
    delete: { parameters: OneTeam; responses: { 204: { content?: never } } }
  }
  '/teams/{id}/invite': {
    post: {
      parameters: OneTeam
      requestBody: Json<{ email: string }>
      responses: { 200: Json<{ status: string }> }
    }
  }
  '/teams/{id}/members/{userId}': {
    delete: { parameters: { path: { id: string; userId: string } }; responses: { 204: { content?: never } } }
  }
  '/teams/{id}/pending-invitations': {
    get: { parameters: OneTeam; responses: { 200: Json<{ id: string; email: string }[]> } }
  }
  '/teams/{id}/pending-invitations/{invitationId}': {
    delete: {
      parameters: { path: { id: string; invitationId: string } }
      responses: { 204: { content?: never } }
    }
  }
  '/teams/checkout': {
    post: {
      requestBody: Json<{ name: string; description: string; member_count: number }>
      responses: { 200: Json<components['schemas']['Checkout']> }
    }
  }
  '/product-interest': {
    get: { parameters: { query: Product }; responses: { 200: Json<{ interested: boolean }> } }
    post: {
      requestBody: Json<Product & { interested: boolean }>
      responses: { 200: Json<{ interested: boolean }> }
    }
  }
}
