import { Switch, Text } from '@mantine/core';
import type { LinkSpec } from '@/api/types';
import { QuantityInput } from '@/components/QuantityInput';
import { linkTitle } from '@/format/links';
import { BIT_RATE, ENERGY_PER_BYTE, PERCENT, type Quantity, TIME } from '@/format/quantities';
import { between, type Drawing, linkName, updateLinks } from '@/cluster/drawing';
import {
  BACK,
  carries,
  type Directed,
  type Direction,
  isAsymmetric,
  setAsymmetric,
  setDirected,
  valueOf,
} from '@/cluster/linkEdits';
import { BendFields } from './BendFields';
import classes from './editor.module.css';
import { editor, useDrawing } from './editorStore';
import { OnOff } from './OnOff';
import { LinkKind } from './PartPreset';

interface Props {
  /** Properties of one link, or of several that get the same values. */
  links: LinkSpec[];
  readOnly: boolean;
  errors: Record<string, string>;
}

const DIRECTED: readonly { key: Directed; label: string; quantity: Quantity; max?: number }[] = [
  { key: 'bit_per_s', label: 'Rate', quantity: BIT_RATE },
  { key: 'delay_s', label: 'Delay', quantity: TIME },
  { key: 'loss_frac', label: 'Loss', quantity: PERCENT, max: 100 },
];
const PLAIN: readonly { key: 'jitter_s' | 'j_per_byte'; label: string; quantity: Quantity }[] = [
  { key: 'jitter_s', label: 'Jitter', quantity: TIME },
  { key: 'j_per_byte', label: 'Energy', quantity: ENERGY_PER_BYTE },
];

/** Properties of links: rate, delay and loss of both directions, jitter, energy, bends. */
export function LinkPanel({ links, readOnly, errors }: Props) {
  const drawing = useDrawing();
  const { edit } = editor();
  const [first] = links;
  if (!first) return null;
  const names = links.map(linkName);
  const id = names.join();
  const many = links.length > 1;
  const differ = links.some(isAsymmetric);
  const directions: readonly Direction[] = differ ? ['forward', 'backward'] : ['both'];
  const labels: Record<Direction, string> = {
    both: 'both directions',
    forward: many ? 'there' : `${first.a} → ${first.b}`,
    backward: many ? 'back' : `${first.b} → ${first.a}`,
  };
  const directed = (key: Directed, label: string, quantity: Quantity, direction: Direction, max?: number) => {
    const field = direction === 'backward' ? BACK[key] : key;
    const value = valueOf(first, key, direction);
    const same = links.every((link) => valueOf(link, key, direction) === value);
    return (
      <QuantityInput
        key={`${id}.${key}.${direction}`}
        label={`${label}, ${labels[direction]}`}
        quantity={quantity}
        max={max}
        disabled={readOnly}
        error={errors[field]}
        value={same ? value : null}
        optional={!same}
        placeholder="different"
        onChange={(next) =>
          next !== null && edit((old) => setDirected(old, names, key, direction, next), `${id}.${field}`)
        }
        testId={`link-${field}`}
      />
    );
  };
  return (
    <>
      <div className={classes.section}>
        <span className="overline">{many ? `${links.length} links` : 'Link'}</span>
        {!many && (
          <Text size="sm" fw={600}>
            {linkTitle(first)}
          </Text>
        )}
        {!many && <Carried drawing={drawing} link={first} />}
        <OnOff names={names} readOnly={readOnly} />
      </div>
      <div className={classes.section}>
        <span className="overline">Rate, delay and loss</span>
        <LinkKind links={links} readOnly={readOnly} />
        {DIRECTED.flatMap(({ key, label, quantity, max }) =>
          directions.map((direction) => directed(key, label, quantity, direction, max)),
        )}
        <Switch
          size="xs"
          label="Directions differ"
          checked={differ}
          disabled={readOnly}
          data-testid="link-asymmetric"
          onChange={(event) => {
            const on = event.currentTarget.checked;
            edit((old) => setAsymmetric(old, names, on));
          }}
        />
      </div>
      <div className={classes.section}>
        <span className="overline">Both directions</span>
        {PLAIN.map(({ key, label, quantity }) => {
          const same = links.every((link) => link[key] === first[key]);
          return (
            <QuantityInput
              key={`${id}.${key}`}
              label={label}
              quantity={quantity}
              disabled={readOnly}
              error={errors[key]}
              value={same ? first[key] : null}
              optional={!same}
              placeholder="different"
              onChange={(value) =>
                value !== null && edit((old) => updateLinks(old, names, { [key]: value }), `${id}.${key}`)
              }
              testId={`link-${key}`}
            />
          );
        })}
      </div>
      {!many && <BendFields name={names[0] ?? ''} readOnly={readOnly} />}
    </>
  );
}

/** Of parallel links: which directions this one carries. */
function Carried({ drawing, link }: { drawing: Drawing; link: LinkSpec }) {
  const together = between(drawing.spec.links, link.a, link.b).length;
  if (together < 2) return null;
  const { forward, backward } = carries(drawing, link);
  const what =
    forward && backward
      ? 'both directions'
      : forward
        ? `${link.a} → ${link.b}`
        : backward
          ? `${link.b} → ${link.a}`
          : 'nothing';
  return (
    <Text size="xs" c="dimmed" data-testid="link-carries">
      One of {together} links between these nodes. Routes use the fastest of them in each direction: this one
      carries {what}.
    </Text>
  );
}
