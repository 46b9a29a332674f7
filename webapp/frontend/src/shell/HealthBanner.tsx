import { IconPlugConnectedX } from '@tabler/icons-react';
import { useHealth } from '@/api/queries';
import { complaint } from './health';
import classes from './Shell.module.css';

/** A banner on every page while Redis or a worker is missing. */
export function HealthBanner() {
  const health = useHealth();
  const message = complaint(health.data, health.error);
  if (!message) return null;
  return (
    <div className={classes.banner} role="alert" data-testid="health-banner">
      <IconPlugConnectedX size={18} color="var(--loom-bad)" />
      {message}
    </div>
  );
}
