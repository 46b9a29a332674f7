/** Where the nodes of a cluster are, as far as that needs no computed arrangement. */
import type { CanvasLayout, ClusterSpec } from '@/api/types';
import type { Point } from './point';
import { shapeLayout } from './shapes';

/** The saved positions; nodes that have none get those of a tree or a ring. Null if the cluster is neither. */
export function knownPlaces(
  spec: ClusterSpec,
  layout: CanvasLayout | undefined,
): Record<string, Point> | null {
  return placed(spec, layout, shapeLayout);
}

/** The saved positions; if nodes have none, those of `arrange` for them. */
export function placed<Arranged extends Record<string, Point> | null>(
  spec: ClusterSpec,
  layout: CanvasLayout | undefined,
  arrange: (spec: ClusterSpec) => Arranged,
): Record<string, Point> | Arranged {
  const nodes = [...spec.devices, ...spec.switches];
  const saved = layout?.positions ?? {};
  if (nodes.every((node) => saved[node.name])) return saved;
  const arranged = arrange(spec);
  if (!arranged) return arranged;
  const known = nodes.filter((node) => saved[node.name]).map((node) => [node.name, saved[node.name]!]);
  return { ...arranged, ...Object.fromEntries(known) };
}
