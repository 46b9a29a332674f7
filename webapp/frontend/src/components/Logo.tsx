/** The logo: three warp threads of a loom, with the weft going over and under them. */
export function Logo({ size = 26 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden>
      <rect width="32" height="32" rx="7" fill="#24476f" />
      <g fill="none" strokeWidth="3" strokeLinecap="round">
        <path d="M9 6v20M16 6v20M23 6v20" stroke="#fff" opacity=".55" />
        <path d="M5 11h8M19 11h8" stroke="#f0b43c" />
        <path d="M12 17h15M5 17h1" stroke="#5fc7b8" />
        <path d="M5 23h15M26 23h1" stroke="#f0b43c" />
      </g>
    </svg>
  );
}
