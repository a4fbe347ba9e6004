import { clsx } from 'clsx'
import { copy } from '@/copy/en'
import { useResources } from '@/features/offers/queries'
import { useSession } from '@/features/session/queries'
import { providerNames } from '@/lib/offers'
import { ButtonLink } from '@/ui/button-link'
import { DepthLines } from '@/ui/depth-lines'
import { Logo } from '@/ui/logo'
import { usePageTitle } from '@/ui/page'
import { Carousel } from './carousel'
import { CheapestTicket } from './cheapest-ticket'
import { configuredVoices } from './voices'

/** What the product is, for everybody. Prerendered: its first rendering may use no style attribute. */
export function LandingPage() {
  usePageTitle(copy.app.name)
  return (
    <div className="relative overflow-hidden">
      <a
        href="#main"
        className="sr-only z-60 rounded-control bg-beacon px-4 py-2 font-medium text-on-beacon focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
      >
        {copy.app.skip}
      </a>
      <DepthLines className="absolute inset-x-0 top-0 h-[820px] w-full" />
      <Header />
      <main id="main" tabIndex={-1} className="relative mx-auto max-w-[1180px] px-5">
        <Hero />
        <Providers />
        <Carousel />
        <Voices />
      </main>
      <Footer />
    </div>
  )
}

function Header() {
  return (
    <header className="relative mx-auto flex h-16 max-w-[1180px] items-center gap-2.5 px-5 text-hi">
      <Logo className="size-6" />
      <span className="font-semibold text-lead tracking-[-.015em]">{copy.app.name}</span>
      <nav aria-label={copy.landing.account} className="ml-auto flex items-center gap-2">
        <span className="hidden sm:block">
          <LoginLink kind="ghost" size="medium" />
        </span>
        <ButtonLink to="/create" kind="primary">
          {copy.landing.dashboard}
        </ButtonLink>
      </nav>
    </header>
  )
}

function Hero() {
  const [first, second] = copy.landing.title
  const [before, folder, after] = copy.landing.pitch
  return (
    <section className="grid grid-cols-1 items-center gap-12 pt-12 pb-14 lg:grid-cols-[1.15fr_.85fr] lg:pt-18">
      <div>
        <h1
          tabIndex={-1}
          className="whitespace-nowrap font-semibold text-[clamp(34px,11.2vw,44px)] leading-[1.02] tracking-[-.035em] sm:text-[56px] xl:text-[68px]"
        >
          {first}
          <br />
          {second}
        </h1>
        <p className="mt-6 max-w-[560px] text-card">
          {before}{' '}
          <code className="num rounded-badge bg-ink-2 px-1.5 py-0.5 text-hi text-lead">{folder}</code> {after}
        </p>
        <div className="mt-8 flex flex-wrap gap-3">
          <ButtonLink to="/create" kind="primary" size="large">
            {copy.landing.start}
          </ButtonLink>
          <LoginLink kind="plain" size="large" />
        </div>
      </div>
      <CheapestTicket />
    </section>
  )
}

/** Signed-in readers of /home need no way to sign in. */
function LoginLink({ kind, size }: { kind: 'ghost' | 'plain'; size: 'medium' | 'large' }) {
  if (useSession().status === 'in') return null
  return (
    <ButtonLink to="/auth" kind={kind} size={size}>
      {copy.landing.login}
    </ButtonLink>
  )
}

/** The clouds one can rent from here, as the live catalogue names them. */
function Providers() {
  const { data, isError } = useResources()
  const names = providerNames(Object.values(data ?? {}).flat())
  return (
    <section
      aria-labelledby="providers"
      className="grid min-h-30 content-center border-line-1 border-y sm:min-h-20"
    >
      <h2 id="providers" className="sr-only">
        {copy.landing.providers}
      </h2>
      {isError ? <p className="text-low">{copy.landing.noProviders}</p> : null}
      <ul
        aria-label={copy.landing.providers}
        className="grid grid-cols-2 gap-x-8 gap-y-2 font-medium text-lead text-mid capitalize sm:flex sm:flex-wrap sm:justify-between"
      >
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </section>
  )
}

function Voices() {
  const configured = configuredVoices()
  const widths = ['lg:col-span-5', 'lg:col-span-4', 'lg:col-span-3']
  return (
    <section aria-labelledby="voices" className="pt-20 pb-24">
      <div className="flex flex-wrap items-baseline gap-x-4">
        <h2 id="voices" className="font-semibold text-title">
          {copy.landing.voices}
        </h2>
        {configured ? null : <p className="text-control text-low">{copy.landing.voicesNote}</p>}
      </div>
      <div className="mt-6 grid grid-cols-1 gap-4 lg:grid-cols-12">
        {(configured ?? copy.landing.testimonials).map(({ quote, name, work }, index) => (
          <figure key={name} className={clsx('card flex flex-col p-6', widths[index])}>
            <blockquote className="text-pretty text-card text-hi">{quote}</blockquote>
            <figcaption className="mt-auto pt-5 text-control">
              <span className="font-medium text-hi">{name}</span>
              <span className="text-low">, {work}</span>
            </figcaption>
          </figure>
        ))}
      </div>
    </section>
  )
}

function Footer() {
  return (
    <footer className="border-line-1 border-t">
      <div className="mx-auto flex max-w-[1180px] flex-wrap items-center gap-x-3 gap-y-1 px-5 py-8 text-control text-low">
        <Logo className="size-4 text-low" />
        <span className="text-mid">{copy.app.name}</span>
        <span>{copy.landing.footer}</span>
      </div>
    </footer>
  )
}
