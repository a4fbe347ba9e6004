export const wallet = {
  title: 'Wallet',
  refresh: 'Refresh wallet data',
  signInToRefresh: 'Sign in to refresh wallet data',
  addFunds: '+ Add Funds',
  spending: (rate: string) => `Spending ${rate}/hr`,
  calculating: 'Calculating...',
  balanceFailed: 'Failed to fetch wallet balance',
  transactionsFailed: 'Failed to fetch transaction history',
} as const
