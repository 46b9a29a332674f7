import { bytes, human, seconds } from '@/format/units';
import type { Hit } from './layout';
import classes from './timeline.module.css';

interface Props {
  hit: Hit;
  x: number;
  y: number;
  width: number;
  color: string | undefined;
}

const TIP_WIDTH = 230;

/** The details of the span under the pointer. */
export function SpanTip({ hit, x, y, width, color }: Props) {
  const { span, device } = hit;
  const left = x + 16 + TIP_WIDTH > width ? x - TIP_WIDTH - 12 : x + 16;
  return (
    <div className={classes.tip} style={{ left, top: y + 14, width: TIP_WIDTH }} data-testid="span-tip">
      <div className={classes.tipTitle}>
        <span className={classes.dot} style={{ background: color }} />
        {device.name}
        <span className={classes.tipKind}>{span.kind}</span>
      </div>
      <dl className={classes.facts}>
        {factsOf(hit).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function factsOf({ span }: Hit): [string, string][] {
  const duration = span.end_s - span.start_s;
  const facts: [string, string][] = [['what', span.name]];
  if (span.layer >= 0) facts.push(['layer', String(span.layer)]);
  facts.push(['takes', seconds(duration)], ['from', `${span.start_s.toFixed(6)} s`]);
  if (span.peer) facts.push([span.kind === 'recv' ? 'from device' : 'to device', span.peer]);
  if (span.payload_bytes > 0) facts.push(['payload', bytes(span.payload_bytes)]);
  if (span.payload_bytes > 0 && duration > 0)
    facts.push(['rate', human((span.bytes * 8) / duration, 'bit/s')]);
  if (span.flops > 0) facts.push(['work', human(span.flops, 'FLOP')]);
  if (span.flops > 0 && duration > 0) facts.push(['speed', human(span.flops / duration, 'FLOP/s')]);
  if (span.token >= 0)
    facts.push(['token', `${span.token}${span.request > 0 ? ` of request ${span.request}` : ''}`]);
  return facts;
}
