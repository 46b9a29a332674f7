import { ApiError, sentence, SilentServer } from '@/api/client';
import { command } from '@/api/command';
import type { Health } from '@/api/queries';
import { holderText } from '@/format/holder';

/** What is missing, in one sentence with the remedy; null if nothing is. */
export function complaint(health: Health | undefined, error: unknown): string | null {
  if (error) return whyUnknown(error);
  if (!health) return null;
  if (health.redis)
    return `Redis ${health.redis}. Runs go on and keep their reports, but none can start or be watched. Restart it, or give it memory or disk; this page reconnects by itself.`;
  if (health.storage)
    return `A worker cannot write to the database (${health.storage}): runs go on and are stored once it can. Free disk space, or restart the database.`;
  if (health.starting) return null;
  if (!health.worker_emulate)
    return `No emulation worker answers: new runs wait in the queue. Start one with ${command('worker --queue emulate')}.`;
  if (!health.worker_plan)
    return `No planning worker answers: predictions do not work. Start one with ${command('worker --queue plan')}.`;
  return null;
}

/** Why the server has not said what is missing. */
function whyUnknown(error: unknown): string | null {
  if (error instanceof SilentServer)
    return 'The server takes requests but does not answer them. This page asks again by itself.';
  if (!(error instanceof ApiError)) return `The state of the server is not known: ${sentence(error)}`;
  if (error.status === 0) return 'The server cannot be reached. This page reconnects by itself.';
  if (error.status === 401) return null; // the page for logging in says it
  return `The server could not say whether all its parts answer: ${error.message} This page asks again by itself.`;
}

/** "2 runs and 1 point waiting"; "" if nothing waits for the emulator. */
export function waitingText({ queue_length, waiting_points }: Health): string {
  const counts = [
    [queue_length, 'run'],
    [waiting_points, 'point'],
  ] as const;
  const words = counts.flatMap(([count, what]) =>
    count ? [`${count} ${what}${count === 1 ? '' : 's'}`] : [],
  );
  return words.length ? `${words.join(' and ')} waiting` : '';
}

/** For which other program on the machine runs wait; "" if for none. */
export function heldText({ held_by }: Health): string {
  return held_by ? `Another program emulates on this machine: ${holderText(held_by)}. Runs wait for it` : '';
}
