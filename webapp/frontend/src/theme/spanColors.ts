import type { SpanKind } from '@/api/types';

/** One colour per kind of span, for timelines and attributions. */
export const spanColors: Record<SpanKind, string> = {
  compute: '#2f8f83',
  send: '#d98a1f',
  recv: '#c9a227',
  wait: '#b9c0ca',
  load: '#7d62c9',
  store: '#a3704a',
  evict: '#b653a4',
  stage: '#3f7fc4',
};

/** The parts of a report's attribution in the order in which they are stacked. */
export const attributionColors = {
  compute_s: spanColors.compute,
  link_s: spanColors.send,
  load_s: spanColors.load,
  staging_s: spanColors.stage,
  wait_s: spanColors.wait,
  idle_s: '#e3e6ea',
} as const;
