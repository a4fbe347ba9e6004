import { X } from 'lucide-react'
import { copy } from '@/copy/en'
import { IconButton } from '@/ui/button'
import { TextLink } from '@/ui/button-link'
import { Notice } from '@/ui/notice'
import { textOf } from './model'
import { useDismiss, useNotices } from './queries'

/** What the team is told about its money, above every page. Nothing while all is well. */
export function NoticeBar({ enabled }: { enabled: boolean }) {
  const { data } = useNotices(enabled)
  const { mutate } = useDismiss()
  if (!data || data.length === 0) return null
  return (
    <section aria-label={copy.notices.label} className="mb-6 grid gap-3">
      {data.map((notice) => {
        const { tone, title, detail, next } = textOf(notice)
        return (
          <Notice
            key={notice.id}
            tone={tone}
            action={
              <IconButton
                label={copy.notices.dismiss(title)}
                className="-my-1.5 -mr-2"
                onClick={() => mutate(notice)}
              >
                <X size={15} aria-hidden="true" />
              </IconButton>
            }
          >
            <p className="font-medium">{title}</p>
            <p className="text-control text-mid">
              {detail} <TextLink to="/billing">{next}</TextLink>
            </p>
          </Notice>
        )
      })}
    </section>
  )
}
