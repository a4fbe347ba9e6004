import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { SSHKey } from '@/api/types'
import { copy } from '@/copy/en'
import { useCreateAccess, useDeleteAccess, useSession, useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Button, IconButton } from '@/ui/button'
import { type Column, DataList } from '@/ui/data-list'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { openModal } from '@/ui/modal-store'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { shownKey } from './model'
import { NewKeyDialog } from './new-key-dialog'
import { useDeleteKey, useKeys } from './queries'

/** The public keys that open the team's pods. */
export function KeysPage() {
  const { team } = useTeam()
  const signedIn = useSession().status === 'in'
  const { data, isPending, isFetching, isError, refetch } = useKeys()
  const access = useCreateAccess(copy.keys.signInToCreate)
  const [open, setOpen] = useState(false)
  return (
    <Page
      title={copy.keys.title}
      refreshing={isFetching && !isPending}
      actions={
        <Button
          kind="primary"
          icon={<Plus size={15} aria-hidden="true" />}
          disabled={!access.can}
          title={access.can ? undefined : access.reason}
          onClick={() => setOpen(true)}
          className="w-full sm:w-auto"
        >
          {copy.keys.create}
        </Button>
      }
    >
      {isError ? (
        <ListError text={copy.keys.failed} busy={isFetching} onRetry={() => void refetch()} />
      ) : null}
      {signedIn && isPending && !isError ? <Skeleton className="h-40 rounded-card" /> : null}
      {!signedIn || data?.length === 0 ? (
        <EmptyState title={copy.keys.empty} hint={copy.keys.emptyHint} />
      ) : null}
      {data && data.length > 0 ? (
        <DataList label={copy.keys.title} columns={columns} rows={data} rowKey={(key) => key.id} />
      ) : null}
      {team ? <NewKeyDialog teamId={team.id} open={open} onClose={() => setOpen(false)} /> : null}
    </Page>
  )
}

const { columns: heads } = copy.keys

const columns: readonly Column<SSHKey>[] = [
  {
    header: heads.name,
    width: 'w-[28%]',
    cell: (key) => (
      <div className="min-w-0">
        <div className="truncate font-medium text-hi">{key.name}</div>
        <div className="num truncate text-low text-meta" title={key.id}>
          {key.id}
        </div>
      </div>
    ),
  },
  {
    header: heads.key,
    cell: (key) => (
      <code className="num wrap-anywhere block text-control text-mid">{shownKey(key.public_key)}</code>
    ),
  },
  { header: heads.type, width: 'w-[140px]', cell: (key) => <Badge className="num">{key.key_type}</Badge> },
  { header: heads.actions, width: 'w-[96px]', cell: (key) => <DeleteKey sshKey={key} /> },
]

function DeleteKey({ sshKey }: { sshKey: SSHKey }) {
  const { mutate } = useDeleteKey(sshKey.team_id)
  const access = useDeleteAccess(copy.keys.signInToDelete)(sshKey.created_by)
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.keys.deleteTitle,
      message: copy.keys.deleteMessage(sshKey.name),
      actions: [
        { label: copy.app.cancel },
        {
          label: copy.app.delete,
          variant: 'alarm',
          onClick: () => mutate(sshKey),
        },
      ],
    })
  return (
    <IconButton
      label={copy.keys.deleteLabel(sshKey.name)}
      title={access.can ? copy.app.delete : access.reason}
      disabled={!access.can}
      onClick={ask}
      className="enabled:hover:bg-danger-wash enabled:hover:text-danger"
    >
      <Trash2 size={16} aria-hidden="true" />
    </IconButton>
  )
}
