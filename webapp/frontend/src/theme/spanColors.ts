import type { SpanKind } from '@/api/types';

/** One colour per kind of span, for timelines and attributions: slate computes, orange is the network, brown the disk;
 * no device has one of them. */
export const spanColors: Record<SpanKind, string> = {
  compute: '#56677d',
  send: '#d98a1f',
  recv: '#c9a227',
  wait: '#b9c0ca',
  load: '#8c5a2b',
  store: '#b07d4b',
  evict: '#cda67c',
  stage: '#8fa0b5',
};

/** The parts of a report’s attribution in the order in which they are stacked, as colours of CSS. */
export const attributionColors = {
  compute_s: spanColors.compute,
  link_s: spanColors.send,
  load_s: spanColors.load,
  staging_s: spanColors.stage,
  wait_s: spanColors.wait,
  idle_s: 'var(--loom-line)',
} as const;
