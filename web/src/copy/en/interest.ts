export const interest = {
  badge: 'Coming Soon',
  batch: {
    title: 'Batch Inference Jobs',
    text: 'Process large datasets through your AI models efficiently with optimized batch processing',
  },
  clusters: {
    title: 'Multi Node Clusters',
    text: "Scale across multiple nodes with the provider's management tools",
  },
  button: "I'm interested",
  submitting: 'Submitting...',
  recorded: 'You will be notified when this feature is live',
  signIn: 'Sign in to express interest',
  checking: 'Checking your interest',
} as const
