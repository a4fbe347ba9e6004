import { CreatePage } from '@/features/create/create-page'

export default CreatePage
