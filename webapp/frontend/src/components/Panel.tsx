import { Card, Group, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './Panel.module.css';

interface Props {
  title: string;
  /** One short line of explanation beside the title. */
  about?: ReactNode;
  extra?: ReactNode;
  children: ReactNode;
  testId?: string;
  /** The content reaches the card's edges. */
  flush?: boolean;
  fill?: boolean;
  /** A lower head, where room is scarce. */
  dense?: boolean;
}

/** A card with a heading and, at its right, controls: one section of a page. */
export function Panel({
  title,
  about,
  extra,
  children,
  testId,
  flush = false,
  fill = false,
  dense = false,
}: Props) {
  return (
    <Card
      component="section"
      padding={0}
      data-testid={testId}
      className={fill ? classes.fill : undefined}
      aria-label={title}
    >
      <Group
        justify="space-between"
        px={dense ? 12 : 'md'}
        py={dense ? 3 : 9}
        className={classes.panelHead}
        data-dense={dense || undefined}
        wrap={dense ? 'nowrap' : 'wrap'}
        gap="sm"
      >
        <Group gap="xs" align="baseline" wrap="nowrap" style={{ minWidth: 0 }}>
          <Title order={2} fz={14} style={{ whiteSpace: 'nowrap' }}>
            {title}
          </Title>
          {about && (
            <Text size="xs" c="dimmed" truncate>
              {about}
            </Text>
          )}
        </Group>
        {extra}
      </Group>
      <div className={flush ? classes.flush : classes.panelBody}>{children}</div>
    </Card>
  );
}
