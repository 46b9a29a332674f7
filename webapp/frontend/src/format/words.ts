/** A text with a capital at its beginning. */
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** How a run ended, in words that follow its state: `peer_lost` is "a device failed". */
export function outcomeText(outcome: string): string {
  return outcome === 'peer_lost' ? 'a device failed' : outcome.replaceAll('_', ' ');
}
