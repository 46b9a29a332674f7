import { Suspense, useState } from 'react';
import type { Session } from '@/api/queries';
import { later } from '@/components/later';
import { UserButton } from './UserButton';

const load = () => import('./UserMenuItems');
/** A failure is told when the menu is opened. */
const loadAhead = () => void load().catch(() => undefined);
const UserMenuItems = later(async () => (await load()).UserMenuItems);

/** The menu of the user who is logged in: loaded when somebody points at it, shown when it is pressed. */
export function UserMenu({ session }: { session: Session }) {
  const [opened, setOpened] = useState(false);
  const button = (
    <UserButton
      user={session.user}
      aria-haspopup="menu"
      aria-expanded={false}
      onPointerEnter={loadAhead}
      onFocus={loadAhead}
      onClick={() => setOpened(true)}
    />
  );
  if (!opened) return button;
  return (
    <Suspense fallback={button}>
      <UserMenuItems session={session} />
    </Suspense>
  );
}
