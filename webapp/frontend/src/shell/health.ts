import type { Health } from '@/api/queries';

/** What is wrong, in one sentence with the remedy; null while all is well. */
export function complaint(health: Health | undefined, unreachable: boolean): string | null {
  if (unreachable) return 'The server does not answer. This page will go on by itself when it is back.';
  if (!health) return null;
  if (!health.redis)
    return 'Redis is gone: runs can neither start nor be watched. Start it again; this page will go on by itself.';
  if (!health.worker_emulate)
    return 'No emulation worker answers: new runs wait in the queue. Start one with ./loom worker --queue emulate.';
  if (!health.worker_plan)
    return 'No planning worker answers: predictions do not work. Start one with ./loom worker --queue plan.';
  return null;
}
