import type { Health } from '@/api/queries';

/** What is missing, in one sentence with the remedy; null if nothing is. */
export function complaint(health: Health | undefined, unreachable: boolean): string | null {
  if (unreachable) return 'The server does not answer. This page reconnects by itself.';
  if (!health) return null;
  if (!health.redis)
    return 'Redis does not answer: runs can neither start nor be watched. Restart it; this page reconnects by itself.';
  if (health.storage)
    return `A worker cannot write to the database (${health.storage}): runs go on and are stored once it can. Free disk space, or restart the database.`;
  if (!health.worker_emulate)
    return 'No emulation worker answers: new runs wait in the queue. Start one with ./loom worker --queue emulate.';
  if (!health.worker_plan)
    return 'No planning worker answers: predictions do not work. Start one with ./loom worker --queue plan.';
  return null;
}
