export const auth = {
  title: 'Log in to Homeport',
  lead: 'No password: we send you a link.',
  email: 'Email',
  submit: 'Login using Magic Link',
  sending: 'Sending Magic Link...',
  sent: 'Check your email for a login link',
  required: 'Email is required',
  failed: 'The login link could not be sent. Please try again.',
  issues: 'Having issues? Reach out to',
} as const
