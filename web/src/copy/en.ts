import * as copy from './en/groups'

/**
 * Every visible text. Texts of the specification stand unbroken as one string literal each;
 * the groups follow the screens, and a page loads its own only.
 */
export { copy }
