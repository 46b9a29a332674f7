import { Tooltip, UnstyledButton } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import type { StrategyRow } from '@/api/types';
import type { Method } from '@/experiment/data/design';
import classes from './design.module.css';
import { Variants } from './Variants';

interface Props {
  strategies: readonly StrategyRow[];
  methods: readonly Method[];
  /** By strategy the reason why it cannot run this model on this cluster; null if it can. */
  reasons: Readonly<Record<string, string | null>>;
  onChange: (methods: Method[]) => void;
  /** Suggested where a parameter is the name of a device. */
  deviceNames: string[];
}

/** The strategies to compare, each one tick; a ticked one has parameters. */
export function Methods({ strategies, methods, reasons, onChange, deviceNames }: Props) {
  const own = (name: string) => methods.filter(({ strategy }) => strategy === name);
  const toggle = ({ name, title }: StrategyRow) =>
    onChange(
      own(name).length > 0
        ? methods.filter(({ strategy }) => strategy !== name)
        : inOrder(strategies, [...methods, { strategy: name, title, params: {} }]),
    );
  return (
    <div className={classes.methods} role="group" aria-label="Strategies">
      {strategies.map((row) => {
        const reason = reasons[row.name];
        const chosen = own(row.name);
        const several = chosen.length > 1 ? ` × ${chosen.length}` : '';
        return (
          <div key={row.name} className={classes.methodRow}>
            <Tooltip
              label={reason ? `Not here: ${reason}` : row.summary}
              multiline
              maw={340}
              position="right"
            >
              <UnstyledButton
                role="checkbox"
                aria-checked={chosen.length > 0}
                aria-disabled={Boolean(reason) || undefined}
                className={classes.method}
                onClick={() => (reason && chosen.length === 0) || toggle(row)}
                data-testid={`method-${row.name}`}
              >
                <span className={classes.tick}>
                  {chosen.length > 0 && <IconCheck size={12} stroke={3} />}
                </span>
                <span>
                  {chosen[0]?.title ?? row.title}
                  {several}
                </span>
              </UnstyledButton>
            </Tooltip>
            {chosen.length > 0 && (
              <Variants row={row} methods={methods} onChange={onChange} deviceNames={deviceNames} />
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Methods in the order of the catalogue: a line keeps its colour whichever was ticked first. */
function inOrder(strategies: readonly StrategyRow[], methods: Method[]): Method[] {
  const place = (method: Method) => strategies.findIndex(({ name }) => name === method.strategy);
  return methods.toSorted((a, b) => place(a) - place(b));
}
