/** Figures as people read them. */

const UNITS: ReadonlyArray<readonly [number, string]> = [
  [31_536_000, "y"],
  [86_400, "d"],
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];

/** An age as kubectl prints it: 45s, 12m, 3h20m, 5d3h. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole}s`;
  for (let index = 0; index < UNITS.length; index++) {
    const [unit, name] = UNITS[index]!;
    const count = Math.floor(whole / unit);
    if (count < 1 || (count < 2 && index < UNITS.length - 1)) continue;
    const below = UNITS[index + 1];
    if (!below || count >= 10) return `${count}${name}`;
    const rest = Math.floor((whole - count * unit) / below[0]);
    return rest ? `${count}${name}${rest}${below[1]}` : `${count}${name}`;
  }
  return `${whole}s`;
}

export function ageOf(timestamp: string | undefined, now: number = Date.now()): string {
  const at = timestamp ? Date.parse(timestamp) : NaN;
  return Number.isNaN(at) ? "" : age((now - at) / 1000);
}

export function bytes(count: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = count;
  let index = 0;
  while (Math.abs(value) >= 1024 && index < names.length - 1) {
    value /= 1024;
    index++;
  }
  return `${index && Math.abs(value) < 10 ? value.toFixed(1) : Math.round(value)} ${names[index]}`;
}

export function cores(milli: number): string {
  return milli % 1000 === 0 ? String(milli / 1000) : milli >= 10_000 ? (milli / 1000).toFixed(1) : `${milli}m`;
}

export function milliseconds(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  const value = seconds * 1000;
  return `${value >= 10 ? Math.round(value) : value.toFixed(1)} ms`;
}

export function rate(perSecond: number): string {
  return perSecond >= 10 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}

/** A long text cut for display; what is left out is counted. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length.toLocaleString("en")} characters)`;
}
