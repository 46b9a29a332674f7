/** The instant in an address: `#t=1.25` is virtual second 1.25 of a run. */

/** Null where the address names none. */
export function momentIn(hash: string): number | null {
  const found = /^#t=(\d+(?:\.\d+)?)$/.exec(hash);
  return found ? Number(found[1]) : null;
}

export const hashOf = (instant_s: number | null): string =>
  instant_s === null ? '' : `#t=${Number(instant_s.toFixed(4))}`;

/** Writes the instant into the present address, so that its link opens the run there. */
export function showInAddress(instant_s: number | null): void {
  history.replaceState(history.state, '', `${location.pathname}${location.search}${hashOf(instant_s)}`);
}

/** Calls `shown` with the instant of an address that a person opens on this page. */
export function onMoment(shown: (instant_s: number) => void): () => void {
  const look = () => {
    const instant_s = momentIn(location.hash);
    if (instant_s !== null) shown(instant_s);
  };
  window.addEventListener('hashchange', look);
  return () => window.removeEventListener('hashchange', look);
}
