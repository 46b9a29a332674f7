/** The guided run: what to do next, and what the last thing did, from what has happened so far. Pure. */
import { isOver, type ShowcaseGuide } from '@/api/types';
import { linkTitle } from '@/format/links';
import { rate, seconds } from '@/format/units';
import { effectsOf } from '@/run/data/effects';
import { isCalled } from '@/run/data/parts';
import type { LinkView, Snapshot } from '@/run/data/snapshot';
import type { Selection } from '@/run/topology/Topology';

export interface Step {
  name: 'slow' | 'slowed' | 'drop' | 'dropped' | 'recovered' | 'over';
  /** What is to be seen, and what it comes from. */
  text: string;
  /** What to do now; '' while there is nothing. */
  todo: string;
  show: Selection;
}

type Seen = Pick<Snapshot, 'state' | 'tokens' | 'links' | 'devices' | 'injections' | 'recoveries' | 'time_s'>;

/** Tokens to look at before something is done. */
const LOOK = 6;

/** Null while there is nothing to say yet, and in a run that did not finish. */
export function guided(guide: ShowcaseGuide, seen: Seen): Step | null {
  const link = seen.links.find((one) => isCalled(one as Parameters<typeof isCalled>[0], guide.link));
  const device = seen.devices.find(({ name }) => name === guide.device);
  if (!link || !device) return null;
  if (seen.state === 'verifying' || seen.state === 'finished') return over(seen);
  if (isOver(seen.state) || seen.state !== 'running' || seen.tokens.length < LOOK) return null;
  const lost = seen.recoveries.find((one) => one.device === guide.device && one.how !== 'joined');
  if (lost || device.failedAt_s !== null)
    return afterDrop(guide, lost?.rebuild_s == null ? null : pauseOf(lost));
  const name = linkTitle(link);
  if (link.changes === 0) {
    return {
      name: 'slow',
      text: `A token takes ${newest(seen)}: each board computes its layers and passes the result on.`,
      todo: `Slow this link: set ${name} to ${rate(guide.bit_per_s)}.`,
      show: { kind: 'link', name: link.name },
    };
  }
  if (isSlow(link, guide)) {
    const text = effectText(seen) ?? `${name} carries ${rate(slower(link))} now: wait for the next token.`;
    return { name: 'slowed', text, todo: 'Undo it, and watch the tokens again.', show: null };
  }
  return {
    name: 'drop',
    text: effectText(seen) ?? `A token takes ${newest(seen)}.`,
    todo: `Now drop that board: ${guide.device}.`,
    show: { kind: 'device', name: guide.device },
  };
}

function afterDrop({ device }: ShowcaseGuide, pause_s: number | null): Step {
  if (pause_s === null) {
    const text = `${device} is gone. A new plan gives its layers to the others, which load them from disk: no token comes meanwhile.`;
    return { name: 'dropped', text, todo: '', show: null };
  }
  const text = `The text went on ${seconds(pause_s)} after ${device} had gone, with the same tokens as without the failure.`;
  return { name: 'recovered', text, todo: 'Change what you like, or wait for the report.', show: null };
}

function over({ state }: Seen): Step {
  const text =
    state === 'finished'
      ? 'The report says what each change cost and what was predicted, and whether the tokens are those of one device.'
      : 'The text is complete. One device now computes it, too, so that the tokens can be compared.';
  return { name: 'over', text, todo: state === 'finished' ? 'Open the report.' : '', show: null };
}

const slower = ({ forward, backward }: LinkView) => Math.min(forward.set_bit_per_s, backward.set_bit_per_s);

const isSlow = (link: LinkView, { bit_per_s }: ShowcaseGuide) => slower(link) < 10 * bit_per_s;

function newest({ tokens }: Seen): string {
  return seconds(tokens.at(-1)?.latency_s ?? 0);
}

/** What the newest change did to a token; null while none came since. */
function effectText({ injections, tokens }: Seen): string | null {
  const effect = effectsOf(injections, tokens).at(-1);
  const change = injections.at(-1);
  if (!effect || !change) return null;
  const [before, after] = [seconds(effect.before_s), seconds(effect.after_s)];
  return before === after
    ? `${change.label}: a token still takes ${after}.`
    : `${change.label}: a token takes ${after}; before, it took ${before}.`;
}

function pauseOf(one: Snapshot['recoveries'][number]): number {
  return one.detect_s + (one.replan_s ?? 0) + (one.reload_s ?? 0) + (one.rebuild_s ?? 0);
}
