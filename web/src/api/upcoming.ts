import type { components, paths } from './schema.gen'

/** An answer with a JSON body. */
interface Json<T> {
  content: { 'application/json': T }
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
}
