/** Colours for canvases, read from CSS variables so that they follow the colour scheme. */
import { useComputedColorScheme } from '@mantine/core';
import { useMemo } from 'react';
import type { SpanKind } from '@/api/types';
import { spanColors } from '@/theme/spanColors';

export interface CanvasColors {
  surface: string;
  line: string;
  text: string;
  dim: string;
  bad: string;
  injection: string;
  failed: string;
  /** The instant that the page shows, and what is chosen. */
  instant: string;
  link: string;
  onSpan: string;
  onWait: string;
  span: Record<SpanKind, string>;
  font: string;
  smallFont: string;
  tinyFont: string;
}

/** Colours of the present scheme; a new object after every switch. */
export function useCanvasColors(): CanvasColors {
  const scheme = useComputedColorScheme('light');
  return useMemo(() => {
    const style = getComputedStyle(document.documentElement);
    const variable = (name: string) => style.getPropertyValue(name).trim();
    const family = variable('--mantine-font-family') || 'sans-serif';
    const dark = scheme === 'dark';
    return {
      surface: variable('--loom-surface'),
      line: variable('--loom-line'),
      text: variable('--loom-text'),
      dim: variable('--loom-dim'),
      bad: variable('--loom-bad'),
      injection: variable('--loom-bad'),
      failed: dark ? 'rgba(234, 114, 114, 0.13)' : 'rgba(194, 59, 59, 0.09)',
      instant: variable('--mantine-primary-color-filled'),
      link: spanColors.send,
      onSpan: '#ffffff',
      onWait: dark ? '#d5dae0' : '#3a434e',
      span: dark ? { ...spanColors, wait: '#4a5461' } : { ...spanColors, wait: '#d3d8df' },
      font: `500 12px ${family}`,
      smallFont: `11px ${family}`,
      tinyFont: `10px ${family}`,
    };
    // The variables change exactly when the scheme does.
  }, [scheme]);
}
