import { Switch, Text } from '@mantine/core';
import type { LinkSpec } from '@/api/types';
import { QuantityInput } from '@/components/QuantityInput';
import { BIT_RATE, ENERGY_PER_BYTE, PERCENT, type Quantity, TIME } from '@/format/quantities';
import { linkName, updateLinks } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor } from './editorStore';
import { OnOff } from './OnOff';

interface Props {
  /** Properties of one link, or of several that get the same values. */
  links: LinkSpec[];
  readOnly: boolean;
  errors: Record<string, string>;
}

const IMPAIRMENTS: readonly {
  key: 'delay_s' | 'jitter_s' | 'loss_frac' | 'j_per_byte';
  label: string;
  quantity: Quantity;
  max?: number;
}[] = [
  { key: 'delay_s', label: 'Delay, each way', quantity: TIME },
  { key: 'jitter_s', label: 'Jitter', quantity: TIME },
  { key: 'loss_frac', label: 'Loss', quantity: PERCENT, max: 100 },
  { key: 'j_per_byte', label: 'Energy', quantity: ENERGY_PER_BYTE },
];

/** Properties of a link: rates of both directions, delay, jitter, packet loss. */
export function LinkPanel({ links, readOnly, errors }: Props) {
  const { edit } = editor();
  const [first] = links;
  if (!first) return null;
  const names = links.map(linkName);
  const id = names.join();
  const many = links.length > 1;
  const set = (patch: Partial<LinkSpec>, key: string) =>
    edit((old) => updateLinks(old, names, patch), `${id}.${key}`);
  const same = <Key extends keyof LinkSpec>(key: Key) => links.every((link) => link[key] === first[key]);
  const asymmetric = first.reverse_bit_per_s !== null;
  return (
    <>
      <div className={classes.section}>
        <span className="overline">{many ? `${links.length} links` : 'Link'}</span>
        {!many && (
          <Text size="sm" fw={600}>
            {first.a} – {first.b}
          </Text>
        )}
        <OnOff names={names} readOnly={readOnly} />
      </div>
      <div className={classes.section}>
        <span className="overline">Rate</span>
        <QuantityInput
          key={`${id}.rate`}
          label={asymmetric && !many ? `${first.a} → ${first.b}` : 'Both directions'}
          quantity={BIT_RATE}
          value={same('bit_per_s') ? first.bit_per_s : null}
          optional={!same('bit_per_s')}
          placeholder="different"
          disabled={readOnly}
          error={errors.bit_per_s}
          onChange={(value) => value !== null && set({ bit_per_s: value }, 'bit_per_s')}
          testId="link-bit_per_s"
        />
        {asymmetric && (
          <QuantityInput
            key={`${id}.reverse`}
            label={many ? 'Backward' : `${first.b} → ${first.a}`}
            quantity={BIT_RATE}
            disabled={readOnly}
            value={first.reverse_bit_per_s}
            error={errors.reverse_bit_per_s}
            onChange={(value) => value !== null && set({ reverse_bit_per_s: value }, 'reverse_bit_per_s')}
            testId="link-reverse_bit_per_s"
          />
        )}
        <Switch
          size="xs"
          label="Directions differ"
          checked={asymmetric}
          disabled={readOnly}
          data-testid="link-asymmetric"
          onChange={(event) =>
            set({ reverse_bit_per_s: event.currentTarget.checked ? first.bit_per_s : null }, 'asymmetric')
          }
        />
      </div>
      <div className={classes.section}>
        <span className="overline">Delay and impairments</span>
        {IMPAIRMENTS.map(({ key, label, quantity, max }) => (
          <QuantityInput
            key={`${id}.${key}`}
            label={label}
            quantity={quantity}
            max={max}
            disabled={readOnly}
            error={errors[key]}
            value={same(key) ? first[key] : null}
            optional={!same(key)}
            placeholder="different"
            onChange={(value) => value !== null && set({ [key]: value }, key)}
            testId={`link-${key}`}
          />
        ))}
      </div>
    </>
  );
}
