import type { ClusterSpec, Plan } from '@/api/types';

/** "computes on desk alone" of a plan that gives no other worker anything to compute, though there are several; else
 *  empty. A terminal, which may look up tokens and compute the head, is none that a plan chooses. */
export function aloneText(
  cluster: Pick<ClusterSpec, 'devices'>,
  plan: Pick<Plan, 'work'> | null | undefined,
): string {
  const ranks = new Set(plan?.work.map(({ device }) => device));
  const workers = cluster.devices.filter(({ role }) => role !== 'terminal');
  const computing = cluster.devices.filter(({ role }, rank) => role !== 'terminal' && ranks.has(rank));
  return computing.length === 1 && workers.length > 1 ? `computes on ${computing[0]?.name} alone` : '';
}
