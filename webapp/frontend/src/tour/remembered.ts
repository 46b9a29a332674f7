/** Whether a person has seen or refused the tour, in this browser. */

const key = (user: string) => `edgeloom-tour:${user}`;

export function hasSeenTour(user: string, storage: Pick<Storage, 'getItem'> = localStorage): boolean {
  try {
    return storage.getItem(key(user)) !== null;
  } catch {
    return true; // nothing can be stored: it would be offered on every visit
  }
}

export function rememberTour(user: string, storage: Pick<Storage, 'setItem'> = localStorage): void {
  try {
    storage.setItem(key(user), 'seen');
  } catch {
    // Nothing can be stored, and then the tour is not offered at all.
  }
}
