import { ActionIcon, Group, Scroller } from '@mantine/core';
import { IconHelp } from '@tabler/icons-react';
import { Link, usePage } from '@/components/navigation';
import type { Session } from '@/api/queries';
import { ColorSchemeSwitch } from './ColorSchemeSwitch';
import { HealthDot } from './HealthDot';
import { Logo } from '@/components/Logo';
import classes from './Shell.module.css';
import { UserMenu } from './UserMenu';

const PAGES = [
  { to: '/', label: 'Start', id: 'start', end: true },
  { to: '/clusters', label: 'Clusters', id: 'clusters', end: false },
  { to: '/runs/new', label: 'New run', id: 'new-run', end: true },
  { to: '/runs', label: 'Runs', id: 'runs', end: true },
  { to: '/experiments', label: 'Experiments', id: 'experiments', end: false },
  { to: '/compare', label: 'Compare', id: 'compare', end: false },
  { to: '/machines', label: 'Machines', id: 'machines', end: false },
];

/** Scrolls to the present page's name, where the names do not fit beside each other. */
function bringIntoView(name: HTMLAnchorElement | null): void {
  name?.scrollIntoView({ block: 'nearest', inline: 'center' });
}

/** The header of every page: navigation, state of the server, the manual about this page, and the user menu. */
export function Header({ session, help }: { session: Session; help: string }) {
  const path = usePage();
  return (
    <header className={classes.header}>
      <Link to="/" className={classes.brand}>
        <Logo /> EdgeLoom
      </Link>
      <nav className={classes.nav} aria-label="Pages">
        <Scroller
          classNames={{ root: classes.scroller, container: classes.pages, content: classes.pages }}
          edgeGradientColor="var(--loom-surface)"
          controlSize={36}
          draggable={false}
        >
          {PAGES.map(({ to, label, id, end }) => {
            const isHere = path === to || (!end && path.startsWith(`${to}/`));
            return (
              <Link
                key={to}
                ref={isHere ? bringIntoView : undefined}
                to={to}
                data-testid={`nav-${id}`}
                aria-current={isHere ? 'page' : undefined}
                className={`${classes.link} ${isHere ? classes.active : ''}`}
              >
                {label}
              </Link>
            );
          })}
        </Scroller>
      </nav>
      <Group gap="xs" wrap="nowrap">
        <HealthDot />
        <ActionIcon
          component="a"
          href={help}
          target="_blank"
          variant="subtle"
          color="gray"
          size="lg"
          title="Documentation of this page, in a new tab"
          aria-label="Documentation of this page, in a new tab"
          data-testid="help"
        >
          <IconHelp size={18} />
        </ActionIcon>
        <ColorSchemeSwitch />
        <UserMenu session={session} />
      </Group>
    </header>
  );
}
