import { ActionIcon, Group, Tooltip } from '@mantine/core';
import { IconArrowsMaximize, IconArrowsMinimize } from '@tabler/icons-react';
import { useEffect, useState, type ReactNode } from 'react';
import { Panel } from '@/components/Panel';
import classes from './cockpit.module.css';

interface Props {
  title: string;
  about?: ReactNode;
  extra?: ReactNode;
  children: ReactNode;
  testId?: string;
}

/** A panel of the cockpit: it fills its place, and the whole window on request. */
export function CockpitPanel({ title, about, extra, children, testId }: Props) {
  const [large, setLarge] = useState(false);
  useEffect(() => {
    if (!large) return;
    const leave = (event: KeyboardEvent) => event.key === 'Escape' && setLarge(false);
    window.addEventListener('keydown', leave);
    return () => window.removeEventListener('keydown', leave);
  }, [large]);
  const label = large ? 'Back to its place' : 'Fill the window';
  return (
    <div className={classes.panel} data-large={large || undefined}>
      <Panel
        title={title}
        about={about}
        testId={testId}
        flush
        fill
        dense
        extra={
          <Group gap={6} wrap="nowrap">
            {extra}
            <Tooltip label={label}>
              <ActionIcon
                size="sm"
                variant="subtle"
                color="gray"
                aria-label={`${title}: ${label}`}
                onClick={() => setLarge(!large)}
              >
                {large ? <IconArrowsMinimize size={14} /> : <IconArrowsMaximize size={14} />}
              </ActionIcon>
            </Tooltip>
          </Group>
        }
      >
        {children}
      </Panel>
    </div>
  );
}
