/** Whether a person has seen or refused the tour, in this browser. */

const key = (user: string) => `edgeloom-tour:${user}`;

export function hasSeenTour(user: string, storage: Pick<Storage, 'getItem'> = localStorage): boolean {
  try {
    return storage.getItem(key(user)) !== null;
  } catch {
    return true; // no storage: do not offer it again on every page
  }
}

export function rememberTour(user: string, storage: Pick<Storage, 'setItem'> = localStorage): void {
  try {
    storage.setItem(key(user), 'seen');
  } catch {
    // Nothing can be remembered: the tour is offered again.
  }
}
