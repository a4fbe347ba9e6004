import { KeysPage } from '@/features/keys/keys-page'

export default KeysPage
