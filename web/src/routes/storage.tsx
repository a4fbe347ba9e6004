import { StoragePage } from '@/features/volumes/storage-page'

export default StoragePage
