import { spanColors } from '@/theme/spanColors';
import { useCanvasColors } from '../charts/colors';
import { Legend } from '@/components/Legend';

const SHOWN: [keyof typeof spanColors, string][] = [
  ['compute', 'compute'],
  ['send', 'send'],
  ['recv', 'receive'],
  ['wait', 'wait'],
  ['load', 'load weights'],
  ['stage', 'copy to the network'],
];

/** The legend of a timeline: one colour per kind of span. */
export function SpanLegend() {
  const colors = useCanvasColors();
  return <Legend entries={SHOWN.map(([kind, label]) => ({ label, color: colors.span[kind] }))} />;
}
